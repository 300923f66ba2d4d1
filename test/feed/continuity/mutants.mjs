import { mutantsIn } from '../../support/simulation.mjs';

// Rules that are broken on purpose, each as a patch of a file in src/. The simulation finds violations of each. `seed`: a run that does.
const patches = `
# a connection is complete when it opens
protocol/feed-state.ts, seed 9
-completeFrom ?? at + freeDelayMs, isFixed
+completeFrom ?? at, isFixed
# a frame at any time proves that there is no delay
protocol/feed-state.ts, seed 17
-completed(before, at < delayedFrom ? openedAt : Math.max(at, openedAt), outage);
+completed(before, openedAt, outage);
# a frame up to 450 ms after \`opened\` proves that there is no delay
protocol/feed-state.ts, seed 51
-completed(before, at < delayedFrom ? openedAt : Math.max(at, openedAt), outage);
+completed(before, at < openedAt + 450 ? openedAt : Math.max(at, openedAt), outage);
# a quiet connection is complete when it opened
protocol/feed-state.ts, seed 9
-return completed(before, settling.until, outage);
+return completed(before, settling.openedAt, outage);
# a quiet connection is complete after 400 ms
protocol/feed-state.ts, seed 17
-export const freeDelayMs = 500;
+export const freeDelayMs = 400;
# the first connection does not settle
protocol/feed-state.ts, seed 9
-      if (isDue(settles) && (begun === undefined || isRelayBack)) {
+      if (begun === undefined) return { ...opened, completeFrom: event.at, outage: undefined };
+      if (isDue(settles) && isRelayBack) {
# the gap is in the future
protocol/feed-state.ts, seed 17
-completed(before, at < delayedFrom ? openedAt : Math.max(at, openedAt), outage);
+completed(before, at < delayedFrom ? openedAt : until, outage);
# an outage ends when the connection settles, although that connection ends before
protocol/feed-state.ts, seed 9
-    case 'disconnected': {
-      if (event.failure.stage !== 'stream') return isOnlyRelay ? unchanged : down;
+    case 'disconnected': {
+      if (settling !== undefined) return { ...down, outage: undefined };
+      if (event.failure.stage !== 'stream') return isOnlyRelay ? unchanged : down;
# an outage begins again when a connection ends that has not settled
protocol/feed-state.ts, seed 9
-outage: isOnlyRelay ? { ...begun, from } : (outage ?? begun) };
+outage: begun };
# a number as deliveryDelayMs is the longest time, not the time
protocol/feed-state.ts, seed 13
-isFixed: completeFrom !== undefined };
+isFixed: false };
# each frame of the ms of \`opened\` has a gap
protocol/feed-state.ts, seed 5
-outage.from >= openedAt) return
+outage.from > openedAt) return
# a gap of the next subscription counts for the outage before it as well
protocol/feed-state.ts, seed 4
-outage === undefined || outage.from >= event.from || isGuess;
+outage === undefined || outage.from >= event.from || isGuess || settling !== undefined;
# no timer ends the settling of a quiet connection
feed/lifecycle.ts, seed 1
-    timeout = timer(until - openedAt + 1, scheduler)
+    timeout = timer(until - openedAt + 60_000, scheduler)
# a window is complete from \`opened\` on
operators/window/time-windows.ts, seed 9
-    const from = this.coveredFrom < Infinity ? undefined : this.outages.completeFrom(now);
+    const from = this.coveredFrom < Infinity ? undefined : (this.outages.completeFrom(now) ?? (this.hasSeenOpened ? now : undefined));
# a connection that was open before the subscription is complete for it at once
operators/window/time-windows.ts, seed 552
-Math.min(from, this.beganAt + freeDelayMs)
+Math.min(from, this.beganAt)
# windows with align 'start' keep frames from before they begin
operators/window/time-windows.ts, seed 29
-    if (!this.hasBegun) return isChanged;
+
# a reader from a time is complete from the record before it on
log/records.ts, seed 11
-Math.max(at, from.time)
+at
# who joins a shared feed while it settles is not told
operators/share-feed.ts, seed 590
-feed.joinedAt(now())
+[] as unknown[]
# an item without a time has that of \`opened\`
operators/items/follow-feed.ts, seed 16
-this.state.settling === undefined ? this.newestAt : undefined;
+this.newestAt;
# a snapshot of a connection that settles says that it is complete
protocol/feed-state.ts, seed 54
-    if (outage === undefined) return [event];
+    if (outage === undefined) return [{ ...event, completeFrom: event.at }];
`;

/** @type {readonly { readonly name: string, readonly file: string, readonly find: string, readonly replacement: string, readonly seed: number }[]} */
export const mutants = mutantsIn(undefined, patches);
