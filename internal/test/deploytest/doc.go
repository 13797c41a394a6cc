// Package deploytest reads what a deployment shows of itself: the alarms and the dashboard
// that infra/ declares, and the lines in which the gateway measures. It reads them as
// CloudWatch does, and says what in them nobody reads or nobody emits (Mismatches).
//
// # Words
//
// A series is a metric with its dimensions, of which a search leaves the values open. A
// reader is an alarm or a panel that shows series.
//
// # Never
//
// It evaluates nothing of CloudFormation but Sub and Ref of a template's own parameters,
// and of search expressions it knows the one form that the dashboard uses: whatever else
// stands there is an error, so that no test passes by not understanding.
//
// It is for tests alone.
package deploytest
