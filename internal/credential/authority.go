package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// authorityLife is long, because a new authority has to be brought to every process.
	authorityLife = 10 * 365 * 24 * time.Hour
	// early is how far clocks may be behind this machine's.
	early = time.Hour

	authorityFile = "ca.crt"
	authorityKey  = "ca.key"
	publicMode    = 0o644
	privateMode   = 0o600
)

// Authority issues certificates. Whoever has its key can be any server: it belongs on no server and in no process.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// OpenAuthority reads ca.crt and ca.key of a directory, and makes both when there is no ca.crt.
func OpenAuthority(dir string) (*Authority, error) {
	public, err := os.ReadFile(filepath.Join(dir, authorityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	private, err := os.ReadFile(filepath.Join(dir, authorityKey))
	if err != nil {
		return nil, fmt.Errorf("read authority: bring its key back, certificates are made with it: %w", err)
	}
	a := &Authority{pem: public}
	if a.certificate, err = decode(public, "CERTIFICATE", x509.ParseCertificate); err != nil {
		return nil, fmt.Errorf("read %s: %w", authorityFile, err)
	}
	if a.key, err = decode(private, "EC PRIVATE KEY", x509.ParseECPrivateKey); err != nil {
		return nil, fmt.Errorf("read %s: %w", authorityKey, err)
	}
	if !a.key.PublicKey.Equal(a.certificate.PublicKey) {
		return nil, fmt.Errorf("%s is not the key of %s", authorityKey, authorityFile)
	}
	return a, nil
}

func newAuthority(dir string) (*Authority, error) {
	a := &Authority{}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Holdfast links"},
		NotBefore: time.Now().Add(-early), NotAfter: time.Now().Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	a.pem = encode("CERTIFICATE", der)
	if err := writeKey(filepath.Join(dir, authorityKey), a.key); err != nil { // first: ca.crt says that both are there
		return nil, fmt.Errorf("make authority: %w", err)
	}
	if err := write(filepath.Join(dir, authorityFile), a.pem, publicMode); err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	return a, nil
}

// Server writes <name>.crt and <name>.key for a server of these hosts, names or addresses. Servers of a cluster show
// the same certificate to each other.
func (a *Authority) Server(dir, name string, hosts []string, life time.Duration) error {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: hosts[0]},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(dir, name, template, life)
}

// Client writes <name>.crt and <name>.key for a process.
func (a *Authority) Client(dir, name string, life time.Duration) error {
	return a.issue(dir, name, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, life)
}

func (a *Authority) issue(dir, name string, template *x509.Certificate, life time.Duration) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make certificate %s: %w", name, err)
	}
	template.SerialNumber = serial()
	template.NotAfter = time.Now().Add(life)
	template.NotBefore = template.NotAfter.Add(-max(life, 0) - early)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("make certificate %s: %w", name, err)
	}
	if err := writeKey(filepath.Join(dir, name+".key"), key); err != nil {
		return fmt.Errorf("make certificate %s: %w", name, err)
	}
	if err := write(filepath.Join(dir, name+".crt"), encode("CERTIFICATE", der), publicMode); err != nil {
		return fmt.Errorf("make certificate %s: %w", name, err)
	}
	return nil
}

// serial is as random as the rules for certificates want it at least.
func serial() *big.Int {
	number := make([]byte, 16)
	_, _ = rand.Read(number) // never fails
	number[0] &= 0x7f        // positive in its encoding
	return new(big.Int).SetBytes(number)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func decode[T any](text []byte, kind string, parse func([]byte) (T, error)) (T, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		var none T
		return none, fmt.Errorf("there is no %s in it", kind)
	}
	return parse(block.Bytes)
}
