/* Six threads that share one lock and hold it most of the time: gcc -O1 -pthread convoy.c -o convoy */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long count;

static void *work(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		pthread_mutex_lock(&lock);
		for (int i = 0; i < 200000; i++)
			count++;
		pthread_mutex_unlock(&lock);
	}
}

int main(void)
{
	static char names[6][16] = { "orders", "stock", "prices", "mail", "audit", "cache" };
	pthread_t thread;
	for (int i = 0; i < 6; i++)
		pthread_create(&thread, NULL, work, names[i]);
	sleep(12);
}
