package main_test

import (
	"os"
	"testing"

	"holdfast/internal/test/functiontest"
)

func TestMain(m *testing.M) { os.Exit(functiontest.Main(m)) }
