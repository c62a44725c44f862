// A read of memory that has been freed, which Address Sanitizer must find.
let place = UnsafeMutablePointer<Int>.allocate(capacity: 4)
place.initialize(repeating: 7, count: 4)
place.deallocate()
print(place[CommandLine.arguments.count])
