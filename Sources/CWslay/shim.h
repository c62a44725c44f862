#ifdef __linux__
#include <features.h>
#endif
#include <sys/types.h>
#include <wslay/wslay.h>
