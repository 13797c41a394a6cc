// Package awstest gives tests an AWS account on this machine: MiniStack or moto, started
// as a process of the test's own, and a Front that brings about the trouble neither shows.
//
// With authorization MiniStack refuses what no policy allows, conditions.py adding the
// condition keys that it lacks; a stack can be deployed there, and its functions run.
//
// tools.sh installs both, and the SAM CLI, in the folder that HOLDFAST_TEST_TOOLS names.
// Without it a test that asks for one is skipped with a message. deploy-local.sh deploys the
// stack for a person to try, and lines.py prints what to paste after a deployment.
// engine.sh finds or starts a container engine for `sam local`, with an image made here.
//
// It is for tests alone.
package awstest
