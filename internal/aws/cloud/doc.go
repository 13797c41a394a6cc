// Package cloud opens a holdfast in AWS: a table, and the data key that seals what is
// secret in it.
//
// A Table contacts nobody until it is used. Its Box asks KMS once and then stays in
// memory. Environment is the configuration of a function: all that it needs is in its
// environment, so neither files nor other services are looked at, and the SDK's packages
// for that stay out of its binary. A person's own AWS identity, which may need them, is
// package profile's.
package cloud
