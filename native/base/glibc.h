/* SPDX-License-Identifier: MIT */
#ifndef IBVX_BASE_GLIBC_H
#define IBVX_BASE_GLIBC_H
/*
 * glibc: included before every file of the library.  glibc 2.32 and 2.34 moved functions of libpthread and libdl into libc and gave them
 * new versions, without a change of what they do.  Bound to their first versions the library loads where glibc is older, too: in a JVM,
 * which has libpthread and libdl loaded.
 */
#include <features.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define GLIBC_FIRST "GLIBC_2.2.5"
#define GLIBC_CLOCK "GLIBC_2.3.3"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define GLIBC_FIRST "GLIBC_2.17"
#define GLIBC_CLOCK "GLIBC_2.17"
#endif

#ifdef GLIBC_FIRST
#define GLIBC_BIND(function, version) __asm__(".symver " #function "," #function "@" version)
GLIBC_BIND(dladdr, GLIBC_FIRST);
GLIBC_BIND(dlerror, GLIBC_FIRST);
GLIBC_BIND(dlopen, GLIBC_FIRST);
GLIBC_BIND(dlsym, GLIBC_FIRST);
GLIBC_BIND(pthread_condattr_setclock, GLIBC_CLOCK);
GLIBC_BIND(pthread_create, GLIBC_FIRST);
GLIBC_BIND(pthread_detach, GLIBC_FIRST);
GLIBC_BIND(pthread_getspecific, GLIBC_FIRST);
GLIBC_BIND(pthread_join, GLIBC_FIRST);
GLIBC_BIND(pthread_key_create, GLIBC_FIRST);
GLIBC_BIND(pthread_key_delete, GLIBC_FIRST);
GLIBC_BIND(pthread_once, GLIBC_FIRST);
GLIBC_BIND(pthread_setspecific, GLIBC_FIRST);
GLIBC_BIND(pthread_sigmask, GLIBC_FIRST);
#endif

#endif
