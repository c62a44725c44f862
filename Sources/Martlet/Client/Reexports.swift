// This library's calls return a device's receipts, reports and errors, so an app that imports it can name them.
@_exported public import MartletDevice
// A client is used through the store's contexts, tables and records: one import gives both.
@_exported public import MartletStore
