// Command mutants switches off the guards of the protocol one at a time and looks whether some test fails without each:
// the list is list/*.txt, `make mutants` runs it, docs/mutants.md says how to read and extend it.
//
// It guards the claim that each guard of the protocol has a test which fails when the guard is removed. A mutant is a small
// patch of today's source. All of them are in one test build, made by the go command's -overlay, so that neither the
// product nor the checkout has a switch for any. The list can't rot: a test of the suite applies every patch. It imports
// nothing of the product.
package main
