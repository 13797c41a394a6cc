// Package awstest gives tests an AWS account on this machine: MiniStack or moto, started
// as a process of the test's own, and a Front that brings about the trouble neither shows.
//
// tools.sh installs both in the folder that HOLDFAST_TEST_TOOLS names. Without it a test
// that asks for one is skipped, and says so.
//
// It is for tests alone.
package awstest
