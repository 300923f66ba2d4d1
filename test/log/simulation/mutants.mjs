// Rules that are broken on purpose, each as a patch of a file in src/log/. The simulation finds violations of each. `seed`: a run that does.
const patches = `
# offsets are used again after a power failure
recovery.ts, seed 5
-const isComplete = end?.header?.boot === boot ||
+const isComplete = true ||
# segments without a record stay
recovery.ts, seed 2
-disk.unlinkSync(path);
# a cursor passes unfinished work
consume.ts, seed 1
-while (this.#batches[0]?.isDone === true) done = this.#batches.shift()?.position;
+done = this.#batches.pop()?.position; this.#batches.length = 0;
# no gap after retention
reader.ts, seed 6
-this.#lost(before, place, true);
+void 0;
# no gap after a restart
writer.ts, seed 2
-this.#state = at === undefined ? noFeed : stoppedAt(at, logGap('paused', { from: at, to: at }).failure);
+this.#state = noFeed;
# the lock is free while a write is in flight
writer.ts, seed 1
-  #close(): void {
-    if (this.#inFlight !== undefined) return;
+  #close(): void {
# a full disk loses frames without a number
writer.ts, seed 29
-const missed = this.#end.frames - stored.frames;
+const missed = 0;
# lines that reached the disk are counted as lost
writer.ts, seed 6
-return end === undefined ? this.#begun : placeAfter(end);
+return this.#begun;
# nobody says that the writer is gone
reader.ts, seed 1
-const isGone = tip.closed || now() - tip.writtenAt > goneMs;
+const isGone = false;
# a reader enters the segment before its own again
reader.ts, seed 151
-offset <= current.offset) return undefined;
+offset === current.offset) return undefined;
# a reader does not notice that a new writer has replaced its empty segment
reader.ts, seed 2
-return !this.#isFile && fd !== undefined && this.#machine.disk.fstatSync(fd).nlink === 0;
+return false;
# a gap without a number is not counted
lines.ts, seed 7
-? { offset: offset + 1, frames, holes: holes + 1, at }
+? { offset: offset + 1, frames, holes, at }
`;

/** @type {readonly { readonly name: string, readonly file: string, readonly seed: number, readonly find: string, readonly replacement: string }[]} */
export const mutants = patches
  .split(/^# /m)
  .slice(1)
  .map((text) => {
    const [name, where, ...lines] = text.trimEnd().split('\n');
    const [, file, seed] = /^(.+), seed (\d+)$/.exec(where);
    const part = (sign) =>
      lines
        .filter((line) => line.startsWith(sign))
        .map((line) => line.slice(1))
        .join('\n');
    return { name, file: `log/${file}`, seed: Number(seed), find: part('-'), replacement: part('+') };
  });
