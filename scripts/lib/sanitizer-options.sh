# Options for the sanitizers, for `source scripts/lib/sanitizer-options.sh FOLDER`; their lists are written
# into the folder.

# The sanitizer cannot see the standard library's Mutex, which is not built with it: two threads that
# use one in turn are reported (tried with a program of ten lines). What runs inside `withLock`, a
# closure of the type (inout sending State) -> sending Result, is left out: as it is mangled, as it is
# where it throws, and where the state is a tuple.
printf 'race:%s\n' zYuYTXEfU zYuKYTXEfU z_tYTXEfU > "$1/suppressions"
export TSAN_OPTIONS="suppressions=$1/suppressions"

# What is never freed is not looked for: Swift's runtime and Foundation keep things for the life of
# the process.
# Foundation reads past the end of a directory entry when it starts a program.
echo 'interceptor_via_fun:findMaximumOpenFromProcSelfFD' > "$1/known"
export ASAN_OPTIONS=detect_leaks=0:suppressions=$1/known
