import { mutantsIn } from '../../support/simulation.mjs';

// Breaks rules on purpose, each by patching a file in src/log/. The simulation must notice: `seed` is a run that does.
const patches = `
# a writer continues the generation before
recovery.ts, seed 17
-const gen = Math.max(now(), 1 + Math.max(after, last?.gen ?? 0, before?.gen ?? 0));
+const gen = after || now();
# a generation is only later than the records that are there
recovery.ts, seed 10
-const gen = Math.max(now(), 1 + Math.max(after, last?.gen ?? 0, before?.gen ?? 0));
+const gen = 1 + after;
# a cursor passes unfinished work
consume.ts, seed 1
-while (batches[0]?.isDone === true) done = batches.shift()?.position;
+done = batches.pop()?.position; batches.length = 0;
# no gap after retention
records.ts, seed 1
-const isHole = answer.type === 'hole' || answer.type === 'other';
+const isHole = answer.type === 'other';
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
recorder.ts, seed 5
-const gaps = [logGap('writeFailed', from, to, frames - stored.frames)];
+const gaps = [logGap('writeFailed', from, to, 0)];
# lines that reached the disk are removed
recovery.ts, seed 2
-if (end === undefined || end.place.offset === offset) {
+if (end === undefined || !isCompressed) {
# nobody says that the writer is gone
records.ts, seed 1
-const hasGone = isGone(tip, this.#now());
+const hasGone = false;
# a reader that is ahead of a later generation skips its records
records.ts, seed 502
-if (isAhead && this.#isBefore !== undefined) this.#isBefore = (offset) => offset < head.began;
# a reader does not notice that a new writer has replaced its empty segment
reader.ts, seed 3
-return !this.#isFile && fd !== undefined && !isInPlace(this.#machine.disk, fd, path);
+return false;
# a gap without a number is not counted
../protocol/place.ts, seed 5
-holes: holes + (isGap && missed === undefined ? 1 : 0),
+holes,
# no second read before a later segment
reader.ts, seed 112
-if (current !== undefined && (await this.#readBytes())) return true;
# a position does not have the frames that the next gap counts
records.ts, seed 27
-return this.#surplus > 0 ? { ...place, frames: place.frames + this.#surplus } : place;
+return place;
# repair while a write is in flight
writer.ts, seed 2
-if (isHere && this.#inFlight !== undefined) return;
# a torn line stays
recovery.ts, seed 82
-if (!isCompressed && disk.statSync(path).size > end.length) disk.truncateSync(path, end.length);
# a log without a record has a gap of its own after a loss
records.ts, seed 179
-const isLost = isHole || isDamaged || (isAhead && head.at === 0);
+const isLost = isHole || isDamaged;
# a reader takes the generation of a writer that has no record
lines.ts, seed 90
-gen: head.offset === head.began ? head.after : head.gen,
+gen: head.gen,
# a reader that has lost records receives them in a gap again
records.ts, seed 138
-else if (before && before.gen !== head.gen) this.#surplus = surplusOf(before, head);
# the first tip of a writer says what time it is, before its source does
../operators/items/event-time.ts, seed 6
-time.known() === -Infinity ? at :
+
# a gap of the disk ends later than the feed is
recorder.ts, seed 57
-const to = Math.max(this.reached(), from);
+const to = Math.max(Date.now(), from);
# the tip of another generation counts the records of this one
records.ts, seed 357
-return gen <= tip.gen && recordsAfter({ ...place, gen }, tip) > 0;
+return gen <= tip.gen && tip.offset > (gen < tip.gen ? tip.began : place.offset);
# a writer goes on in its generation after a loss
writer.ts, seed 457
-this.#generation = takeGeneration(this.#folder, this.#machine, this.#tip, this.#generation);
+const { gen } = this.#generation;
+this.#generation = { ...takeGeneration(this.#folder, this.#machine, this.#tip, this.#generation), gen };
# a writer appends to an old segment
writer.ts, seed 3
-const bytes = sealedBytes(chunk.text);
-    if (chunk.begins !== undefined) this.#begin(chunk.begins, bytes.length);
+const { disk } = this.#machine;
+const old = this.#newest ? undefined : disk.readdirSync(this.#folder).filter((name) => name.endsWith('.ndjson')).sort().at(-1);
+if (old === undefined) {
+  if (chunk.begins !== undefined) this.#begin(chunk.begins, chunk.text.length);
+} else {
+  const path = this.#folder + '/' + old;
+  const fd = disk.openSync(path, 'r+');
+  const position = disk.fstatSync(fd).size;
+  this.#newest = { fd, path, position, isCut: false };
+  chunk.text = chunk.text.slice(chunk.text.indexOf('\\n') + 1);
+}
+const bytes = sealedBytes(chunk.text);
`;

export const mutants = mutantsIn('log', patches);
