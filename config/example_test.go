package config_test

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/config"
)

// A flag overrides a variable of the environment, which overrides the default. Each setting knows where its value
// comes from, so that an operator can be told.
func ExampleLoadServer() {
	flags := pflag.NewFlagSet("claimq server", pflag.ContinueOnError)
	config.AddServerFlags(flags)
	if err := flags.Parse([]string{"--node-id=n1", "--bootstrap"}); err != nil {
		panic(err)
	}
	environ := []string{"CLAIMQ_NODE_ID=n2", "CLAIMQ_DATA_DIR=/var/lib/claimq"}
	cfg, err := config.LoadServer("", environ, flags)
	if err != nil {
		panic(err)
	}
	fmt.Println(cfg.NodeID, "from", cfg.Origins["node_id"])
	fmt.Println(cfg.DataDir, "from", cfg.Origins["data_dir"])
	// Output:
	// n1 from flag --node-id
	// /var/lib/claimq from variable CLAIMQ_DATA_DIR
}

// A size is a whole number with a unit. It is shown in the form that is read.
func ExampleParseBytes() {
	n, err := config.ParseBytes("1536MiB")
	if err != nil {
		panic(err)
	}
	fmt.Println(n, config.FormatBytes(n))
	// Output: 1610612736 1536MiB
}
