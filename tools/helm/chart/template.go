package main

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// printTemplates prints the same as `helm template` for the chart in the folder. Values
// that the chart's schema does not allow are an error.
func printTemplates(w io.Writer, folder string, release chartutil.ReleaseOptions, kube *chartutil.KubeVersion, values map[string]any) error {
	loaded, err := loader.Load(folder)
	if err != nil {
		return err
	}
	files, err := rendered(loaded, release, kube, values)
	if err != nil {
		return err
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "NOTES.txt") })
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		fmt.Fprintf(w, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	for _, h := range hooks {
		fmt.Fprintf(w, "---\n# Source: %s\n%s\n", h.Path, h.Manifest)
	}
	return nil
}

// rendered returns the results of the chart's templates, by name.
func rendered(c *chart.Chart, release chartutil.ReleaseOptions, kube *chartutil.KubeVersion, values map[string]any) (map[string]string, error) {
	if v := c.Metadata.KubeVersion; v != "" && !chartutil.IsCompatibleRange(v, kube.String()) {
		return nil, fmt.Errorf("the chart is for Kubernetes %s, not %s", v, kube)
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kube
	all, err := chartutil.ToRenderValues(c, values, release, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}
