// Enough file descriptors for all: asked for where the system allows it, refused clearly where not.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A client has a socket to the stream and one to the ticket endpoint, which it may keep. */
const PER_CLIENT = 2;
const OTHERS = 200;

const limits = () => {
  try {
    const [, soft, hard] = /^Max open files +(\S+) +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return [soft, hard].map((text) => (text === 'unlimited' ? Infinity : Number(text)));
  } catch {
    // Where the system does not tell, it is tried.
    return [Infinity, Infinity];
  }
};

/** Makes sure that there may be enough; runs this program again under a higher limit when there is need, and ends with its code. */
export const ensureOpenFiles = (clients) => {
  const needed = clients * PER_CLIENT + OTHERS;
  const [soft, hard] = limits();
  if (soft >= needed) return;
  if (hard < needed) {
    const most = Math.floor((hard - OTHERS) / PER_CLIENT);
    console.error(
      `${clients} clients need ${needed} open files, and the system allows ${hard}: take --clients ${most}.`,
    );
    process.exit(2);
  }
  const again = ['-c', 'ulimit -n "$0" && exec "$@"', String(needed), process.execPath];
  const { status } = spawnSync('sh', [...again, ...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit' });
  process.exit(status ?? 1);
};
