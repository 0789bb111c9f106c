/* pause holds the namespaces of a pod and, as its process 1, reaps what is left. */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int s) { (void)s; _exit(0); }

static void reap(int s) {
	(void)s;
	while (waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

int main(void) {
	struct sigaction a = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
	signal(SIGINT, end);
	signal(SIGTERM, end);
	sigaction(SIGCHLD, &a, NULL);
	for (;;) pause();
}
