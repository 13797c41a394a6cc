package cost

// Item is something that AWS charges for.
type Item string

// What a holdfast in AWS is charged for. Nothing of it bills by the hour.
const (
	Requests   Item = "Lambda invocations"
	Compute    Item = "Lambda GB-seconds"
	Transfer   Item = "GB sent to the internet"
	Reads      Item = "DynamoDB read units"
	Writes     Item = "DynamoDB write units"
	Metrics    Item = "CloudWatch metrics"
	Alarms     Item = "CloudWatch alarms"
	Dashboards Item = "CloudWatch dashboards"
	Calls      Item = "CloudWatch API calls"
	Logs       Item = "GB of logs"
	Key        Item = "KMS keys"
	KeyCalls   Item = "KMS requests"
	Schedules  Item = "Scheduler invocations"
)

// Price is what one unit of an item costs.
type Price struct {
	Item Item
	// USD for one unit: a GB, a call, a metric for a month.
	USD float64
	// Free is how many units of each month are not charged. It is of the whole AWS account,
	// not of a holdfast alone.
	Free float64
	// Source is the page that names the price.
	Source string
}

// Region and Dated are where and when Prices held, on the pages themselves. Prices are list
// prices, without tax and without the credits of a new AWS account.
const (
	Region = "us-east-1"
	Dated  = "autumn 2026"
)

const million = 1e6

// Prices are all prices, in the order of a bill. Lambda's are those of arm64.
var Prices = []Price{
	{Requests, 0.20 / million, million, "https://aws.amazon.com/lambda/pricing/"},
	{Compute, 0.0000133334, 400_000, "https://aws.amazon.com/lambda/pricing/"},
	{Transfer, 0.09, 100, "https://aws.amazon.com/ec2/pricing/on-demand/"},
	{Reads, 0.125 / million, 0, "https://aws.amazon.com/dynamodb/pricing/on-demand/"},
	{Writes, 0.625 / million, 0, "https://aws.amazon.com/dynamodb/pricing/on-demand/"},
	{Metrics, 0.30, 10, "https://aws.amazon.com/cloudwatch/pricing/"},
	{Alarms, 0.10, 10, "https://aws.amazon.com/cloudwatch/pricing/"},
	{Dashboards, 3, 3, "https://aws.amazon.com/cloudwatch/pricing/"},
	{Calls, 0.01 / 1000, million, "https://aws.amazon.com/cloudwatch/pricing/"},
	{Logs, 0.50, 5, "https://aws.amazon.com/cloudwatch/pricing/"},
	{Key, 1, 0, "https://aws.amazon.com/kms/pricing/"},
	{KeyCalls, 0.03 / 10_000, 20_000, "https://aws.amazon.com/kms/pricing/"},
	{Schedules, 1 / million, 14 * million, "https://aws.amazon.com/eventbridge/pricing/"},
}

// PriceOf is the price of an item; the zero Price where none exists.
func PriceOf(item Item) Price {
	for _, p := range Prices {
		if p.Item == item {
			return p
		}
	}
	return Price{}
}
