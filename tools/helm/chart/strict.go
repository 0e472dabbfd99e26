package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// checkStrictly decodes each manifest and refuses what the API server would refuse or
// drop: unknown kinds, unknown fields, values of the wrong type.
func checkStrictly(manifests io.Reader) error {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(manifests))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if _, _, err := decoder.Decode(document, nil, nil); err != nil {
			return fmt.Errorf("%w in:\n%s", err, document)
		}
	}
}
