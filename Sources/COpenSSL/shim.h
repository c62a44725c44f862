#ifdef __linux__
#include <features.h>
#endif
#include <sys/types.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
