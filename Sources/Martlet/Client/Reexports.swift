// A client is used through the store's contexts, tables and records: one import gives both.
@_exported public import MartletStore
