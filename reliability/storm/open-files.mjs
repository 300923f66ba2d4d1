// Makes sure that the process may open enough file descriptors for all clients.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A client has one socket for the stream and may have one for ticket requests. */
const PER_CLIENT = 2;
const OTHERS = 200;

const limits = () => {
  try {
    const [, soft, hard] = /^Max open files +(\S+) +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return [soft, hard].map((text) => (text === 'unlimited' ? Infinity : Number(text)));
  } catch {
    // Systems without /proc don't report the limit.
    return [Infinity, Infinity];
  }
};

/** Runs this program again with a higher limit if it is necessary and possible. Exits with an error if the system doesn't allow it. */
export const ensureOpenFiles = (clients) => {
  const needed = clients * PER_CLIENT + OTHERS;
  const [soft, hard] = limits();
  if (soft >= needed) return;
  if (hard < needed) {
    const most = Math.floor((hard - OTHERS) / PER_CLIENT);
    console.error(
      `${clients} clients need ${needed} open files, but the system allows ${hard}. Use --clients ${most}.`,
    );
    process.exit(2);
  }
  const again = ['-c', 'ulimit -n "$0" && exec "$@"', String(needed), process.execPath];
  const { status } = spawnSync('sh', [...again, ...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit' });
  process.exit(status ?? 1);
};
