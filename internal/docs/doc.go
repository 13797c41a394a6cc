// Package docs keeps the project's rules about itself: its tests fail when imports run
// against the layout, when a package has no manual or two, when the top of the repository
// grows a folder that does not belong there, or when the README says something about
// settings and commands that the program does not. It holds no code.
package docs
