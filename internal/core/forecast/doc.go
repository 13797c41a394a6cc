// Package forecast reckons when an account's windows run dry, how full they are at a time to
// come, and whether a provider's accounts together last the week.
//
// # Words
//
// A sample is how full a window was read to be at an instant. Consumption is what was used
// between two samples of one cycle, spread evenly over the time between them. A rate is
// consumption over covered time, in windows a day: 0.16 is 16 % of the window a day. A cycle
// is the time from one reset of a window to the next.
//
// # How it reckons
//
// Consumption is taken from pairs of samples. Within one cycle it is the difference. Across a
// reset it is the later sample alone, counted from the reset on: what was used between the
// earlier sample and the reset is not known, so that time is not covered. A window that fell
// without its reset having come was reset early, and is treated the same way.
//
// The recent rate is that of the last day (of the last hour for a window of a day or less);
// the usual rate is that of the last week. What comes is the usual rate, with the recent
// one's difference from it dying away over the same span. Once thirteen days are covered, the
// usual rate has the shape of the week: each hour of the week its own weight.
//
// The range is what eight of ten weeks stay within, if days differ as the covered days did,
// independently of each other: 1.28 standard deviations of a day's consumption, times the
// square root of the days ahead. Fewer than three covered days have no spread of their own;
// half of the usual rate stands for it.
//
// A figure that is not fresh is carried forward by the same rates from when it was read.
//
// # Never
//
// It does no I/O and has no clock. It adds windows of different plans only in the ratio that
// the caller knows, and says nothing where nothing is known: an Outlook without a rate has no
// dry instant.
package forecast
