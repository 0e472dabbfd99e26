// Command chart replaces helm in the tests, by means of Helm's own packages: helm itself,
// with everything that reaches clusters and registries, takes twice as long to compile. It
// also reads manifests the way the API server does.
//
//	chart lint --set keys.existingSecret=keys helm/claimq
//	chart template --namespace prod --kube-version 1.30.0 --set replicas=5 q helm/claimq
//	chart strict <manifests
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/strvals"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := pflag.NewFlagSet("chart", pflag.ContinueOnError)
	sets := flags.StringArray("set", nil, "a value, as helm --set has it")
	namespace := flags.String("namespace", "default", "the release's namespace")
	version := flags.String("kube-version", chartutil.DefaultCapabilities.KubeVersion.Version, "the version of Kubernetes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	values := map[string]any{}
	for _, set := range *sets {
		if err := strvals.ParseInto(set, values); err != nil {
			return fmt.Errorf("--set %s: %w", set, err)
		}
	}
	kube, err := chartutil.ParseKubeVersion(*version)
	if err != nil {
		return fmt.Errorf("--kube-version %s: %w", *version, err)
	}
	switch left := flags.Args(); {
	case len(left) == 2 && left[0] == "lint":
		return lintChart(left[1], *namespace, kube, values)
	case len(left) == 3 && left[0] == "template":
		release := chartutil.ReleaseOptions{Name: left[1], Namespace: *namespace, Revision: 1, IsInstall: true}
		return printTemplates(os.Stdout, left[2], release, kube, values)
	case len(left) == 1 && left[0] == "strict":
		return checkStrictly(os.Stdin)
	default:
		return fmt.Errorf("cannot %q: it is lint FOLDER, template NAME FOLDER or strict", left)
	}
}

// lintChart refuses what `helm lint --strict` refuses, including warnings.
func lintChart(folder, namespace string, kube *chartutil.KubeVersion, values map[string]any) error {
	var found []error
	for _, m := range lint.AllWithKubeVersion(folder, values, namespace, kube).Messages {
		if m.Severity >= support.WarningSev {
			found = append(found, m)
		}
	}
	return errors.Join(found...)
}
