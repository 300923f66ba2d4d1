/**
 * Rules that are broken on purpose, as replacements in the sources. The simulation finds violations of each. `seed`: a run that does.
 *
 * @type {readonly { readonly name: string, readonly file: string, readonly find: string, readonly replacement: string, readonly seed: number }[]}
 */
export const mutants = [
  {
    name: 'an id has one time: a client is complete up to the last event that it has received, also of an outage',
    file: 'protocol/position.ts',
    find: "until < reached ? `.${until}` : ''",
    replacement: "''",
    seed: 1,
  },
  {
    name: 'an outage does not hold the time up to which a client is complete',
    file: 'relay/event-log.ts',
    find: 'complete: completeAfter(complete, state.events, event),',
    replacement: 'complete: Math.max(complete, time),',
    seed: 1,
  },
  {
    name: 'a gap begins at the time that the client has reached',
    file: 'relay/resume.ts',
    find: 'reached, { from: complete, to, frames: undefined }',
    replacement: 'reached, { from: at, to, frames: undefined }',
    seed: 1,
  },
  {
    name: 'an id does not contain the last watermark',
    file: 'relay/relay-run.ts',
    find: 'Math.max(end.at, watermark)',
    replacement: 'end.at',
    seed: 1,
  },
  {
    name: 'events may be earlier than the last watermark of another relay',
    file: 'relay/resume.ts',
    find: 'snapshotNotBefore(position.state.events, Math.max(position.at, reached))',
    replacement: 'snapshotNotBefore(position.state.events, position.at)',
    seed: 1,
  },
  {
    name: 'the events of a page have the time of its clock',
    file: 'browser/resume-point.ts',
    find: 'withTime(event, this.#reachedAt ?? (this.ownAt = event.at))',
    replacement: 'event',
    seed: 1,
  },
  {
    name: 'a new log counts as later than the events that it receives first',
    file: 'relay/resume.ts',
    find: '(position.seq > 0 && position.at > until)',
    replacement: 'position.at > until',
    seed: 8,
  },
  {
    name: 'a relay does not wait for the time of its client',
    file: 'relay/resume.ts',
    find: 'log.timeSoon + maxAheadMs',
    replacement: 'log.timeNow',
    seed: 8,
  },
  {
    name: 'a client that lacks its gap has the position of the log',
    file: 'relay/resume.ts',
    find: 'const complete = pendingGapFrom ?? until;',
    replacement: 'const complete = until;',
    seed: 3,
  },
  {
    name: 'a client that skips the events of another relay has the position of the log',
    file: 'relay/resume.ts',
    find: 'const complete = pendingGapFrom ?? until;',
    replacement: 'const complete = pendingGapFrom;',
    seed: 1991,
  },
  {
    name: 'a client of another relay may receive more frames of its last ms',
    file: 'relay/resume.ts',
    find: 'const reached = near + 1;',
    replacement: 'const reached = near;',
    seed: 118,
  },
  {
    name: 'a log has the time of the clock before its first connection',
    file: 'relay/event-log.ts',
    find: 'hasClock(state) ? this.#time.now()',
    replacement: 'true ? this.#time.now()',
    seed: 4840,
  },
  {
    name: 'a topic has the time of the clock before its first connection',
    file: 'relay/shared-source.ts',
    find: '!this.time.isWithoutClock && hasClock(this.#state)',
    replacement: '!this.time.isWithoutClock',
    seed: 3202,
  },
];
