/** Reasons for the survivors of src/operators, by file. */
export const operators = {
  'decode/io-ts-guard/guard-tests.ts': [
    {
      code: 'names.length > 16',
      why: 'Both branches return the same result. The number only decides which is faster.',
    },
  ],
  'distinct-recent.ts': [
    { code: 'inOrder.size > 0', why: 'Without an oldest entry its time counts as now, which has not expired.' },
    { code: 'if (at > now) now = at', why: 'Assigning the same time changes nothing.' },
  ],
  'decode/io-ts-guard/compiled-guard.ts': [
    { code: '} catch {', why: 'Without the `return` the result is `undefined` as well.' },
  ],
  'decode/io-ts-guard/io-ts-check.ts': [
    { code: 'context.at(-1)?.type', why: 'A context of io-ts has at least its root. The check is for the type.' },
  ],
  'decode/io-ts-guard/union-tags.ts': [
    {
      code: 'types = []',
      from: '[]',
      why: 'The function is called with a union only, which has types. The default is for the type.',
    },
  ],
  'connection-status.ts': [
    {
      from: "status.state === 'reconnecting'",
      to: 'true',
      why: 'Only this state has a next attempt. The check is for the type.',
    },
  ],
  'bounded/ring.ts': [{ code: 'firstSlots', why: 'The ring grows, so its first size has no visible effect.' }],
  'node/recording/open-recording.ts': [
    { from: 'length < stats.size', why: 'Truncating a file to its own length changes nothing.' },
  ],
  'node/recording/line-buffer.ts': [
    { from: 'this.bytes.length > maxReusedBytes', why: 'The size of the reused buffer has no visible effect.' },
    { from: 'size < this.length + more', why: 'The size of the buffer has no visible effect.' },
    { from: 'size === this.bytes.length', why: 'The buffer would be copied into another of the same size.' },
  ],
  'node/to-readable.ts': [
    {
      code: 'let wants = false',
      why: 'Before the first read, one value is in the stream instead of the queue. This has no visible effect.',
    },
  ],
  'timing/event-time.ts': [
    {
      code: 'if (time > this.newest) this.newest = time',
      mutator: 'EqualityOperator',
      why: 'Assigning the same value changes nothing.',
    },
  ],
  'where-bytes.ts': [
    {
      code: 'const isMatch = rest.length === 0',
      why: 'A shortcut for a single needle. The general code finds the same.',
    },
  ],
  'bounded/bounded-reader.ts': [
    {
      code: "this.#state = 'ended'",
      mutator: 'StringLiteral',
      why: 'The last state of a reader is never compared with itself.',
    },
    {
      code: 'if (this.#queue.size > 0) this.pull()',
      why: 'With an empty queue `pull()` does nothing. The check saves the call.',
    },
  ],
  'memory/holding.ts': [
    {
      code: 'if (this.#isScheduled) return',
      why: 'One task is enough. More tasks find nothing to do.',
    },
    { code: 'this.#isScheduled = true', why: 'One task is enough. More tasks find nothing to do.' },
    {
      code: 'this.#fresh.length >',
      mutator: 'EqualityOperator',
      why: 'Released values are removed one value earlier or later.',
    },
  ],
  'items/item.ts': [
    {
      code: 'isEither(value) && value._tag',
      why: 'An Either that is not a Left is a Right, which does not have that field.',
    },
  ],
  'window/count-window-collector.ts': [
    {
      code: 'if (time > this.now) this.now = time',
      mutator: 'EqualityOperator',
      why: 'Assigning the same value changes nothing.',
    },
  ],
  'window/time-window-collector.ts': [
    {
      code: 'if (time >= this.from && time < this.until)',
      why: 'A shortcut for an item in the same windows as the one before. The general code does the same.',
    },
    {
      code: 'this.until = Math.min(',
      why: 'A shortcut for an item in the same windows as the one before. The general code does the same.',
    },
    {
      code: 'private current: Open<A>[] = []',
      why: 'Replaced before it is read: no window begins at infinity.',
    },
    {
      code: 'private until = -Infinity',
      why: 'Replaced before it is used: no window begins at infinity.',
    },
  ],
  'window/outage-log.ts': [
    { code: 'let known: Known[] = []', why: 'An outage without a time is in no window.' },
    {
      code: 'if (known.length === 0 && current === undefined',
      why: 'A shortcut for an empty list. The general code returns an empty list as well.',
    },
    { code: 'if (known.length > 0)', why: 'An empty list stays empty. The check saves a new list.' },
  ],
  'bounded/bounded-turns.ts': [
    { mutator: 'OptionalChaining', why: 'There is a subscriber whenever a value arrives. The check is for the type.' },
  ],
  'decode/io-ts-guard/changes-nothing.ts': [
    {
      from: 'types === undefined',
      to: 'false',
      code: "_tag !== 'UnionType'",
      why: 'A union has types. The check is for the type.',
    },
    {
      from: "codec._tag === 'InterfaceType'",
      to: 'true',
      why: 'More values are decoded instead of checked by the guard. It is slower, with the same result.',
    },
    {
      code: 'result.left.every(',
      mutator: 'MethodExpression',
      why: 'All errors of a decoder have the same codec as their root.',
    },
    { mutator: 'OptionalChaining', why: 'Every error of io-ts has a root. The check is for the type.' },
  ],
  'decode/io-ts-guard/guard-source.ts': [
    { from: "codec._tag === 'UnionType'", to: 'true', why: 'Only a union has tags.' },
    { to: '""', why: 'Each statement ends with a semicolon, so the line breaks are only for readers.' },
  ],
  'decode/io-ts-guard/tagged.ts': [
    { from: 'type !== undefined', to: 'true', why: 'A codec with such a tag has a type. The check is for the type.' },
    {
      from: 'codec.type !== undefined',
      to: 'true',
      why: 'A codec with such a tag has a type. The check is for the type.',
    },
    { code: 'types = []', from: '[]', why: 'A union has types. The check is for the type.' },
  ],
  'node/recording/recording-error.ts': [
    { code: "const { code = '', message }", why: 'No system error has that code.' },
  ],
  'node/recording/replay-rounds.ts': [
    {
      code: 'if (speed === Infinity) return () => -Infinity',
      why: 'NaN is not later than now, so the result is the same.',
    },
  ],
  'node/recording/recording-reader.ts': [
    { code: 'if (sizes.length > 0 &&', why: 'If the first file is missing, opening it throws the same message.' },
  ],
};
