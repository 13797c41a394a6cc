package dynamostore_test

import (
	"crypto/rand"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/store/storetest"
	"holdfast/internal/test/awstest"
)

// newTable makes a table that no other test has.
func newTable(t testing.TB, endpoint string) string {
	t.Helper()
	table := "holdfast-" + rand.Text()
	if err := dynamostore.CreateTable(t.Context(), patient(endpoint), table); err != nil {
		t.Fatal(err)
	}
	return table
}

// patient is a client that waits for an answer as long as the context allows: on a busy
// machine the stand-ins take their time, and most tests are not about that.
func patient(endpoint string) *dynamodb.Client {
	cfg := awstest.Config(endpoint)
	cfg.HTTPClient = &http.Client{Transport: http.DefaultTransport}
	return dynamostore.Client(cfg)
}

func open(endpoint, table string) *dynamostore.Backend {
	return dynamostore.New(patient(endpoint), table)
}

func conformance(t *testing.T, endpoint string) {
	t.Helper()
	table := newTable(t, endpoint)
	storetest.Run(t, storetest.Harness{Open: func(*testing.T) store.Backend { return open(endpoint, table) }})
}

func TestConformanceMiniStack(t *testing.T) {
	conformance(t, awstest.StartMiniStack(t, false))
}

func TestConformanceMoto(t *testing.T) {
	front := awstest.NewFront(t, awstest.StartMoto(t))
	front.OneByOne()
	conformance(t, front.URL)
}
