// Package credential makes what NATS and the processes prove themselves with: an authority, the servers' certificates,
// an nkey for each kind of process, and the servers' configuration, with the rights of natsconfig.Users in it.
//
// Rules it guards: a private key's file is 0600 from its first moment and complete or not there; nothing that exists is
// replaced unless asked for, so that a second run renews certificates and leaves users alone; nothing is printed but
// names of files. It may import package nats, and of other modules nkeys; it opens no connection.
package credential
