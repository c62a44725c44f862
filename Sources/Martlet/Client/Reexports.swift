// This library's calls return a device's receipts, reports and errors. With this re-export, an app
// can name them.
@_exported public import MartletDevice
// Apps use a client through the store's contexts, tables and records. With this re-export, one
// import is enough.
@_exported public import MartletStore
