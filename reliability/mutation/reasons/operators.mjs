/** Reasons for the survivors of src/operators, by file. */
export const operators = {
  'decode/io-ts-guard/guard-tests.ts': [
    { code: 'names.length > 16', why: 'Both ways give the same answer; the number is where looking up gets faster.' },
  ],
  'distinct-recent.ts': [
    { code: 'inOrder.size > 0', why: 'Where there is no oldest one its time counts as now, which has not expired.' },
    { code: 'if (at > now) now = at', why: 'The same time is the same now.' },
  ],
  'decode/io-ts-guard/compiled-guard.ts': [{ code: '} catch {', why: 'Without a return it gives undefined as well.' }],
  'decode/io-ts-guard/io-ts-check.ts': [
    { code: 'context.at(-1)?.type', why: 'A context of io-ts has its root at least; this is for the type.' },
  ],
  'decode/io-ts-guard/union-tags.ts': [
    { code: 'types = []', from: '[]', why: 'Whoever is asked for them has types; this is for the type.' },
  ],
  'connection-status.ts': [
    {
      from: "status.state === 'reconnecting'",
      to: 'true',
      why: 'Only this state has a next attempt; this is for the type.',
    },
  ],
  'bounded/ring.ts': [{ code: 'firstSlots', why: 'How many slots there are at first is seen by nobody: it grows.' }],
  'node/recording-open.ts': [
    { from: 'length < stats.size', why: 'To cut a file to the length that it has changes nothing.' },
  ],
  'node/recording-lines.ts': [
    { from: 'this.bytes.length > largestKept', why: 'How large the buffer is that is kept is seen by nobody.' },
    { from: 'size < this.length + more', why: 'How large the buffer is is seen by nobody.' },
    { from: 'size === this.bytes.length', why: 'It would be copied into one of the same size.' },
  ],
  'node/to-readable.ts': [
    {
      code: 'let wants = false',
      why: 'Before anybody has read, one value more waits in the stream and one fewer in the queue: nobody sees which.',
    },
  ],
  'where-bytes.ts': [
    {
      code: 'const isMatch = rest.length === 0',
      why: 'The short way for a single needle; the long way finds the same.',
    },
  ],
  'bounded/bounded-reader.ts': [
    {
      code: "this.#state = 'ended'",
      mutator: 'StringLiteral',
      why: 'The state that a reader ends in is compared with those before it, never with itself.',
    },
    {
      code: 'if (this.#queue.size > 0) this.pull()',
      why: 'With nothing waiting there is nothing to hand on and nothing to tell: the call that is saved is for speed.',
    },
  ],
  'memory/holding.ts': [
    {
      code: 'if (this.#isScheduled) return',
      why: 'One task is enough; one for each buffer finds nothing left to do.',
    },
    { code: 'this.#isScheduled = true', why: 'One task is enough; one for each buffer finds nothing left to do.' },
    {
      code: 'this.#fresh.length >',
      mutator: 'EqualityOperator',
      why: 'One more or less, before released values are removed from the list.',
    },
  ],
  'items/item.ts': [
    {
      code: 'isEither(value) && value._tag',
      why: 'An Either that is not one of the two is the other one, which does not have that field.',
    },
  ],
  'window/count-window-collector.ts': [
    { code: 'if (time > this.now) this.now = time', mutator: 'EqualityOperator', why: 'The same value once more.' },
  ],
  'window/time-window-collector.ts': [
    { code: 'if (time > this.now) this.now = time', mutator: 'EqualityOperator', why: 'The same value once more.' },
    {
      code: 'if (time >= this.from && time < this.until)',
      why: 'The short way for an item in the windows of the one before; the long way does the same.',
    },
    {
      code: 'this.until = Math.min(',
      why: 'The short way for an item in the windows of the one before; the long way does the same.',
    },
    {
      code: 'private current: Open<A>[] = []',
      why: 'Replaced before it is read: no time lies in windows that begin at infinity.',
    },
    {
      code: 'private until = -Infinity',
      why: 'Replaced before it counts: no time lies in windows that begin at infinity.',
    },
  ],
  'window/outage-log.ts': [
    { code: 'let known: Known[] = []', why: 'What has no time reaches into no window.' },
    {
      code: 'if (known.length === 0 && !isGoing)',
      why: 'The short way where there is nothing; the long way gives an empty list, too.',
    },
    {
      code: 'return going !== undefined && isGoing',
      from: 'going !== undefined',
      why: '`isGoing` says as much; this is for the type.',
    },
    { code: 'if (known.length > 0)', why: 'Nothing is left of nothing: the test saves a list.' },
    {
      code: 'if (newestAt === undefined ||',
      from: 'newestAt === undefined',
      why: 'An outage without a beginning reaches into no window, and the next opening ends it.',
    },
  ],
  'bounded/bounded-turns.ts': [
    { mutator: 'OptionalChaining', why: 'There is a subscriber whenever a value comes; this is for the type.' },
  ],
  'decode/io-ts-guard/changes-nothing.ts': [
    {
      from: 'types === undefined',
      to: 'false',
      code: "_tag !== 'UnionType'",
      why: 'A union has types; this is for the type.',
    },
    {
      from: "codec._tag === 'InterfaceType'",
      to: 'true',
      why: 'More is decoded where the guard would do: slower, and the same.',
    },
    {
      code: 'result.left.every(',
      mutator: 'MethodExpression',
      why: 'A decoder names one codec as the root of everything that it reports.',
    },
    { mutator: 'OptionalChaining', why: 'Every report of io-ts has a root; this is for the type.' },
  ],
  'decode/io-ts-guard/guard-source.ts': [
    { from: "codec._tag === 'UnionType'", to: 'true', why: 'Only a union has tags.' },
    { to: '""', why: 'Each statement ends with a semicolon: the line breaks are for people who read the program.' },
  ],
  'decode/io-ts-guard/tagged.ts': [
    { from: 'type !== undefined', to: 'true', why: 'Whoever has such a tag has a type; this is for the type.' },
    { from: 'codec.type !== undefined', to: 'true', why: 'Whoever has such a tag has a type; this is for the type.' },
    { code: 'types = []', from: '[]', why: 'A union has types; this is for the type.' },
  ],
  'node/recording-error.ts': [
    { code: "const { code = '', message }", why: 'No error of the system has that code either.' },
  ],
  'node/replay-rounds.ts': [
    { code: 'if (speed === Infinity) return () => -Infinity', why: 'What is no number is not later than now, either.' },
  ],
  'node/recording-reader.ts': [
    { code: 'if (sizes.length > 0 &&', why: 'Where the first file is missing, opening it says so in the same words.' },
  ],
};
