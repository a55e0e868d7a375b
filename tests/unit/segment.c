/* SPDX-License-Identifier: MIT */
/* The shared memory of a job: another process may have got the number of the one that made it. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adopts_what_another_rank_made),
		cmocka_unit_test(test_refuses_a_file),
		cmocka_unit_test(test_refuses_another_memfd),
		cmocka_unit_test(test_refuses_another_segment),
	};

	return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
