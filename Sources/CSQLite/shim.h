#ifdef __linux__
#include <features.h>
#endif
#include <sys/types.h>
#include <sqlite3.h>
#include <string.h>
