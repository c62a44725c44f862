// Ids, values and attributes stand in this library's calls, so who imports it can name them.
@_exported public import MartletModel
