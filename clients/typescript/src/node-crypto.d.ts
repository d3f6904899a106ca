// The one thing of Node that is used, so that its types need not be installed.
declare module "node:crypto" {
  export const webcrypto: Crypto;
}
