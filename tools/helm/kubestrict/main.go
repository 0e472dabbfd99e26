// Command kubestrict reads Kubernetes manifests, as `helm template` prints them,
// and refuses what the API server would refuse or drop: unknown kinds, unknown
// fields, values of the wrong type.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	if err := check(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "kubestrict:", err)
		os.Exit(1)
	}
}

// check decodes each document strictly and prints its kind.
func check(manifests io.Reader) error {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(manifests))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		_, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return fmt.Errorf("%w in:\n%s", err, document)
		}
		fmt.Println(kind.Kind)
	}
}
