package credential

import (
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return write(path, encode("EC PRIVATE KEY", der), privateMode)
}

// write replaces a file whole. Until it has its mode nobody else can read it.
func write(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
