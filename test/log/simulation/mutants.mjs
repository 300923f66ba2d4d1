import { mutantsIn } from '../../support/simulation.mjs';

// Breaks rules on purpose, each by patching a file in src/log/. The simulation must notice: `seed` is a run that does.
const patches = `
# offsets are used again after a power failure
recovery.ts, seed 17
-const isComplete = end?.header?.boot === boot ||
+const isComplete = true ||
# a cursor passes unfinished work
consume.ts, seed 1
-while (batches[0]?.isDone === true) done = batches.shift()?.position;
+done = batches.pop()?.position; batches.length = 0;
# no gap after retention
records.ts, seed 1
-(offset > next && !hasOwnGap(header, next))
+false
# no gap after a restart
recorder.ts, seed 1
-this.#state = stateBefore(end);
+this.#state = noFeed;
# the lock is free while a write is in flight
writer.ts, seed 1
-  #close(): void {
-    if (this.#inFlight !== undefined) return;
+  #close(): void {
# a full disk loses frames without a number
recorder.ts, seed 41
-const gaps = [logGap('writeFailed', from, to, frames - stored.frames)];
+const gaps = [logGap('writeFailed', from, to, 0)];
# lines that reached the disk are counted as lost
recovery.ts, seed 4
-return end.place;
+return begun;
# nobody says that the writer is gone
records.ts, seed 1
-const isGone = tip.closed || this.#now() - tip.writtenAt > goneMs;
+const isGone = false;
# a reader enters the segment before its own again
reader.ts, seed 36
-offset <= current.offset) return undefined;
+offset === current.offset) return undefined;
# a reader does not notice that a new writer has replaced its empty segment
reader.ts, seed 2
-return !this.#isFile && fd !== undefined && this.#machine.disk.fstatSync(fd).nlink === 0;
+return false;
# a gap without a number is not counted
../protocol/place.ts, seed 2
-holes: holes + (isGap && missed === undefined ? 1 : 0),
+holes,
# no second read before a later segment
reader.ts, seed 168
-if (current !== undefined && (await this.#readBytes())) return true;
# no second read of a segment that was compressed meanwhile
reader.ts, seed 10191
-if (current !== undefined && (await this.#readBytes())) return true;
+if (current !== undefined && !this.#isReplaced(current) && (await this.#readBytes())) return true;
# repair while a write is in flight
writer.ts, seed 196
-if (isHere && this.#inFlight !== undefined) return;
# the tip of a new writer is not durable
recovery.ts, seed 26
-disk.fdatasyncSync(tip.fd);
# a torn line stays after a kill
recovery.ts, seed 82
-if (disk.statSync(path).size > end.length) disk.truncateSync(path, end.length);
# a torn line stays after a full disk
recovery.ts, seed 113
-if (disk.fstatSync(fd).size > end.length) disk.ftruncateSync(fd, end.length);
# a log without a record has a gap of its own after a power failure
recovery.ts, seed 38
-place.at === 0 ? null : place.offset
+place.offset
# a log that never had a record jumps as after a power failure
recovery.ts, seed 113
-const isUnused = tip === undefined || tip.closed || tip.boot === boot;
+const isUnused = tip === undefined;
# the first tip of a writer says what time it is, before its source does
../operators/items/event-time.ts, seed 6
-time.known() === -Infinity ? at :
+
# a gap of the disk ends later than the feed is
recorder.ts, seed 57
-const to = Math.max(this.reached(), from);
+const to = Math.max(Date.now(), from);
# an end below the tip is a loss only in another boot
recovery.ts, seed 70
-const isLoss = known > place.offset ||
+const isLoss = (end?.header?.boot !== boot && known > place.offset) ||
# offsets of lines that are gone are used again
writer.ts, seed 448
-const end = hasLost ? this.#recorder.end.offset : stored.offset;
+const end = stored.offset;
# a writer appends to an old segment
writer.ts, seed 2
-const bytes = sealedBytes(chunk.text);
-    if (chunk.begins !== undefined) this.#begin(chunk.begins, bytes.length);
+const { disk } = this.#machine;
+const old = this.#newest ? undefined : disk.readdirSync(this.#folder).filter((name) => name.endsWith('.ndjson')).sort().at(-1);
+if (old === undefined) {
+  if (chunk.begins !== undefined) this.#begin(chunk.begins, chunk.text.length);
+} else {
+  const path = this.#folder + '/' + old;
+  const fd = disk.openSync(path, 'r+');
+  const bytes = Buffer.alloc(disk.fstatSync(fd).size);
+  disk.readSync(fd, bytes, 0, bytes.length, 0);
+  const { line, gen, offset, frames, holes, at, complete } = JSON.parse(bytes.toString().split('\\n')[0]);
+  this.#begun = { line, gen, offset, frames, holes, at, complete };
+  const position = disk.fstatSync(fd).size;
+  this.#newest = { fd, path, position, seen: position };
+  chunk.text = chunk.text.slice(chunk.text.indexOf('\\n') + 1);
+}
+const bytes = sealedBytes(chunk.text);
`;

export const mutants = mutantsIn('log', patches);
