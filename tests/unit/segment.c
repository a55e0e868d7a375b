/* SPDX-License-Identifier: MIT */
/* The shared memory of a job: another process may have got the number of the one that made it. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/shm/segment.h"

static const struct ring_shape shape = {.slot_count = 256, .data_bytes = 1 << 18, .payload_max = 1 << 14};

static off_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static void test_adopts_what_another_rank_made(void **state)
{
	struct segment first = {.fd = -1}, second = {.fd = -1};

	(void)state;
	assert_int_equal(segment_create(&first, "job"), 0);
	assert_int_equal(segment_create(&second, "job"), 0);
	assert_true(first.nonce != second.nonce);
	assert_int_equal(segment_adopt(&second, getpid(), first.fd, first.nonce), 0);
	assert_int_equal(segment_map_head(&second, 2, &shape), 0);
	assert_int_equal(segment_map_head(&first, 2, &shape), 0);
	first.head->doorbells[1].left = 7;
	assert_int_equal(second.head->doorbells[1].left, 7);
	assert_int_equal(ftruncate(first.fd, 0), -1); /* else a process that maps it would die of SIGBUS */
	assert_int_equal(errno, EPERM);
	segment_close(&second);
	segment_close(&first);
}

/* None of these is taken, nor changed. */
static void refuses(int fd, uint64_t nonce, const char *why)
{
	struct segment s = {.fd = -1};
	off_t size = size_of(fd);
	int own;

	assert_int_equal(segment_create(&s, "job"), 0);
	own = s.fd;
	assert_int_equal(segment_adopt(&s, getpid(), fd, nonce), -EACCES);
	assert_error_contains(why);
	assert_int_equal(s.fd, own);
	assert_int_equal(size_of(fd), size);
	segment_close(&s);
}

static void test_refuses_a_file(void **state)
{
	char name[] = "/tmp/ibvdev-segment-XXXXXX";
	int fd = mkstemp(name); /* mode 0600, ours */

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "precious", 8), 8);
	refuses(fd, 1, "no seals");
	unlink(name);
	close(fd);
}

static void test_refuses_another_memfd(void **state)
{
	int fd = memfd_create("ibvdev-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(write(fd, "precious", 8), 8);
	refuses(fd, 1, "no seals");
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	refuses(fd, 1, "another job");
	close(fd);
}

static void test_refuses_another_segment(void **state)
{
	struct segment other = {.fd = -1};

	(void)state;
	assert_int_equal(segment_create(&other, "job"), 0);
	refuses(other.fd, other.nonce ^ 1, "another job");
	segment_close(&other);
}

/* Of the byte at this address in the file that is mapped there; the kernel may have joined two mappings. */
static unsigned long offset_of(const void *mapping)
{
	unsigned long at = (unsigned long)(uintptr_t)mapping, begin, end, offset, found = 1;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && begin <= at && at < end)
			found = offset + (at - begin);
	}
	fclose(maps);
	return found;
}

/* aarch64 kernels with pages of 64 KB map no other offsets than multiples of that. */
static void test_maps_whole_pages_of_any_size(void **state)
{
	struct segment s = {.fd = -1};
	void *map[4];

	(void)state;
	assert_int_equal(segment_create(&s, "job"), 0);
	assert_int_equal(s.page_bytes, sysconf(_SC_PAGESIZE));
	s.page_bytes = 64u << 10;
	assert_int_equal(segment_map_head(&s, 2, &shape), 0);
	assert_int_equal(segment_map(&s, 0, 1, &map[0]), 0);
	assert_int_equal(segment_map(&s, 1, 0, &map[1]), 0);
	assert_int_equal(segment_map_area(&s, 0, 1, 4096, true, &map[2]), 0);
	assert_int_equal(segment_map_area(&s, 1, 0, 4096, true, &map[3]), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(offset_of(map[i]) % s.page_bytes, 0);
		for (int k = 0; k < i; k++)
			assert_true(labs((long)offset_of(map[i]) - (long)offset_of(map[k])) >= (long)(s.page_bytes));
	}
	segment_unmap(&s, map[0]);
	segment_unmap(&s, map[1]);
	munmap(map[2], 4096);
	munmap(map[3], 4096);
	segment_close(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adopts_what_another_rank_made),
		cmocka_unit_test(test_maps_whole_pages_of_any_size),
		cmocka_unit_test(test_refuses_a_file),
		cmocka_unit_test(test_refuses_another_memfd),
		cmocka_unit_test(test_refuses_another_segment),
	};

	return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
