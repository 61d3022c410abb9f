/*
 * A wall clock of its own for one process: preloaded, it stands in front of
 * gettimeofday, clock_gettime and time, and adds an offset and a rate that
 * another process writes into a small mapped file, $REDLOCKCTL_CLOCK.
 *
 *     shown = real + offset + (real - anchor) * rate
 *
 * Only the wall clock is moved. CLOCK_MONOTONIC and similar clocks stay what they
 * are: no step of a real clock moves them either.
 *
 * The real time comes from the system call itself, not from the function of
 * the C library that this one hides: to look that up needs dlsym, which
 * allocates memory, and an allocator that reads the clock while it sets itself
 * up would wait for itself for ever.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The file; the writer in clockshim.go has the same picture of it. */
struct setting {
	uint64_t version;  /* odd while it is being written */
	int64_t anchor_ns; /* real time at which rate began to count */
	int64_t offset_ns;
	int64_t rate_ppb;  /* by how much it is faster, in billionths */
};

static const volatile struct setting *shared;

__attribute__((constructor)) static void open_setting(void)
{
	const char *path = getenv("REDLOCKCTL_CLOCK");
	if (!path)
		return;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		_exit(97); /* better no server than one whose clock does not obey */
	void *p = mmap(NULL, sizeof(struct setting), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		_exit(97);
	shared = p;
}

static int64_t shown(int64_t real)
{
	const volatile struct setting *s = shared;
	if (!s)
		return real;
	int64_t anchor = 0, offset = 0, rate = 0;
	/* A writer that died half-way must not stop us: so many tries and no more. */
	for (int i = 0; i < 1000000; i++) {
		uint64_t before = __atomic_load_n(&s->version, __ATOMIC_ACQUIRE);
		anchor = s->anchor_ns;
		offset = s->offset_ns;
		rate = s->rate_ppb;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && __atomic_load_n(&s->version, __ATOMIC_RELAXED) == before)
			break;
	}
	return real + offset + (int64_t)((__int128)(real - anchor) * rate / 1000000000);
}

static int is_wall(clockid_t id)
{
	return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int r = syscall(SYS_clock_gettime, id, ts);
	if (r == 0 && is_wall(id)) {
		int64_t ns = shown((int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec);
		ts->tv_sec = ns / 1000000000;
		ts->tv_nsec = ns % 1000000000;
	}
	return r;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	struct timespec ts;
	if (tz)
		*(struct timezone *)tz = (struct timezone){0};
	int r = clock_gettime(CLOCK_REALTIME, &ts);
	if (r == 0) {
		tv->tv_sec = ts.tv_sec;
		tv->tv_usec = ts.tv_nsec / 1000;
	}
	return r;
}

time_t time(time_t *t)
{
	struct timespec ts;
	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		return (time_t)-1;
	if (t)
		*t = ts.tv_sec;
	return ts.tv_sec;
}
