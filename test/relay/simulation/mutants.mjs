import { mutantsIn } from '../../support/simulation.mjs';

// Rules that are broken on purpose, each as a patch of a file in src/. The simulation finds violations of each. `seed`: a run that does.
const patches = `
# an id has one time: a client is complete up to the last event that it has received, also of an outage
protocol/place.ts, seed 11
-until < reached ? \`.\${until}\` : ''
+''
# an outage does not hold the time up to which a client is complete
relay/event-log.ts, seed 9
-complete: completeAfter(complete, state, event),
+complete: Math.max(complete, time),
# a gap begins at the time that the client has reached
relay/resume.ts, seed 11
-reached, { from: id.complete, frames: undefined }
+reached, { from: id.at, frames: undefined }
# an id does not contain the last watermark
relay/relay-run.ts, seed 7
-Math.max(end.at, watermark, least.reached)
+Math.max(end.at, least.reached)
# events may be earlier than the last watermark of another relay
relay/resume.ts, seed 5
-snapshotNotBefore(position.state, Math.max(position.at, reached))
+snapshotNotBefore(position.state, position.at)
# the events of a page have the time of its clock
browser/resume-point.ts, seed 1
-withTime(event, this.reachedAt ?? (this.ownAt = event.at))
+event
# a new log counts as later than the events that it receives first
relay/resume.ts, seed 2
-(position.offset > 0 && position.at > until)
+position.at > until
# a relay does not wait for the time of its client
relay/resume.ts, seed 43
-log.timeSoon + maxAheadMs
+log.timeNow
# a client that lacks its gap has the position of the log
relay/resume.ts, seed 37
-const complete = pendingGapFrom ?? until;
+const complete = until;
# a client of another relay may receive more frames of its last ms
relay/resume.ts, seed 55
-const reached = near + 1;
+const reached = near;
# a connection is complete when it opens
protocol/feed-state.ts, seed 8
-until: completeFrom ?? at + freeDelayMs
+until: completeFrom ?? at
# a late subscriber learns that a connection is complete that settles
protocol/feed-state.ts, seed 1
-opensLater(event) ? notBefore(event, at) : event)
+opensLater(event) ? ({ ...notBefore(event, at), completeFrom: at } as LifecycleEvent) : event)
# a feed that was away with its relay begins its outage when it says
protocol/feed-state.ts, seed 37
-const from = Math.min(outage?.from ?? begun.from, begun.from);
+const { from } = begun;
# a relay that is back is complete, although its connection settles
protocol/feed-state.ts, seed 71
-if (isDue(settles) && (begun === undefined || isRelayBack))
+if ((isDue(settles) && begun === undefined) || isRelayBack)
# a connection that sends values only is never complete
relay/event-log.ts, seed 1
-event.type === 'value' ? afterTime(state, watermark) : state
+state
# the gap of a client ends at \`opened\`
relay/relay-client.ts, seed 1
-const to = completeFrom ?? (
+const to = open?.at ?? (
# a client that lacks its gap may receive more frames of its last ms, although it has some
relay/resume.ts, seed 321
-at: sent > 0 ? at : at - 1
+at: at - 1
# a page that was too slow for a block is still live
relay/page.ts, seed 7
-block.from !== this.#next || this.#output.isFull ||
+this.#next < 0 || this.#output.isFull ||
# a page that lacks its gap is live
relay/relay-client.ts, seed 1
-resume.from === 'here' && pendingGapFrom === undefined
+resume.from === 'here'
# a page that joins has all frames of that ms
protocol/feed-state.ts, seed 3, windows of 5 ms
-completeFrom: at + 1 }
+completeFrom: at }
# a page that joins while the relay is lost has all frames of that ms
protocol/feed-state.ts, seed 68, windows of 2 ms
-Math.max(settles.until, begun.from + 1)
+settles.until
# a gap of dropped frames does not count for the window that begins at its end
operators/window/outages.ts, seed 384, windows of 5 ms
-gap.to + 1 }
+gap.to }
`;

export const mutants = mutantsIn(undefined, patches);
