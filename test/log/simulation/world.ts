/** Queues events in virtual time. Promises settle between two events. */
export class World {
  now = 0;
  #number = 0;
  readonly #queue: { readonly at: number; readonly number: number; readonly call: () => void; isCanceled: boolean }[] =
    [];

  after(ms: number, call: () => void): () => void {
    const event = { at: this.now + Math.max(0, ms), number: (this.#number += 1), call, isCanceled: false };
    let index = this.#queue.length;
    while (index > 0 && this.#queue[index - 1]!.at > event.at) index -= 1;
    this.#queue.splice(index, 0, event);
    return () => {
      event.isCanceled = true;
    };
  }

  every(ms: number, call: () => void): () => void {
    let cancel = (): void => undefined;
    const next = (): void => {
      cancel = this.after(ms, () => {
        next();
        call();
      });
    };
    next();
    return () => cancel();
  }

  wait(ms: number): Promise<void> {
    return new Promise((done) => {
      this.after(ms, done);
    });
  }

  async run(ms: number): Promise<void> {
    const until = this.now + ms;
    await settled();
    for (;;) {
      const event = this.#queue[0];
      if (event === undefined || event.at > until) break;
      this.#queue.shift();
      if (event.isCanceled) continue;
      this.now = event.at;
      event.call();
      await settled();
    }
    this.now = until;
  }

  /** Runs until a condition is true, up to a limit. Returns whether it's true. */
  async until(isTrue: () => boolean, limitMs: number): Promise<boolean> {
    for (const end = this.now + limitMs; !isTrue() && this.now < end;) await this.run(100);
    return isTrue();
  }
}

// More than the longest chain of promises in the log.
const settled = async (): Promise<void> => {
  for (let n = 0; n < 10; n += 1) await Promise.resolve();
};
