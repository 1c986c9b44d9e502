/* The processes below this one. It is their subreaper: whatever they do (setsid, double forks),
 * they stay below it until they are dead and reaped. */
#ifndef MATINS_EXECUTE_GUARD_TREE_H_
#define MATINS_EXECUTE_GUARD_TREE_H_

/* Sends `sig` to every process below `root` that one walk finds; a process that was replaced by a
 * stranger of the same number meanwhile is spared. `root_fd`: a pidfd of `root`, after whose end
 * nothing more is signalled; -1 where `root` cannot end and be replaced during the walk. Returns
 * how many were signalled, or -1 when the kernel refused one. */
int tree_signal(int root, int root_fd, int sig);

#endif /* MATINS_EXECUTE_GUARD_TREE_H_ */
