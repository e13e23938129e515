/* Makes each sync take longer, as on a disk that is slower than this machine's. Preloaded by
 * bench/durable.py. SLOW_DISK_MS: the milliseconds that are added to each sync. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef int (*sync_function)(int);

static void wait_for_the_disk(void) {
    const char *text = getenv("SLOW_DISK_MS");
    double milliseconds = text ? atof(text) : 0;
    struct timespec duration;
    duration.tv_sec = (time_t)(milliseconds / 1000);
    duration.tv_nsec = (long)((milliseconds - duration.tv_sec * 1000.0) * 1e6);
    nanosleep(&duration, NULL);
}

int fsync(int file) {
    wait_for_the_disk();
    return ((sync_function)dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    wait_for_the_disk();
    return ((sync_function)dlsym(RTLD_NEXT, "fdatasync"))(file);
}

int syncfs(int file) {
    wait_for_the_disk();
    return ((sync_function)dlsym(RTLD_NEXT, "syncfs"))(file);
}
