// Package catalog is what the owner configured: accounts in their order, client keys,
// policies and settings. One value holds all of it, so that a change is one conditional
// write and a request never sees half of one.
//
// It decides what a name may be, which values a setting may have, and what each change
// leads to; it refuses a change with a sentence that says what to do. It never holds a
// secret: credentials are sealed records of their own, and of a client key only a keyed
// hash is here. What accounts' answers taught is not here either (package account).
package catalog
