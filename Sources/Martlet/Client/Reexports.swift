// What a device keeps and reports stands in this library's calls, so who imports it can name it.
@_exported public import MartletDevice
// A client is used through the store's contexts, tables and records: one import gives both.
@_exported public import MartletStore
