/** Globals of a page that this library uses. A worker has some of them, and Node 21 and later has `navigator`. */
interface PageGlobals extends Partial<EventTarget> {
  readonly location?: { readonly href: string; readonly origin: string };
  readonly document?: { readonly visibilityState: string };
  readonly isSecureContext?: boolean;
  readonly navigator?: { readonly locks?: Locks };
}

/** The part of a `LockManager` that this library uses. */
export interface Locks {
  request(
    name: string,
    options: { readonly signal: AbortSignal } | { readonly steal: true },
    callback: () => Promise<void> | undefined,
  ): Promise<unknown>;
  query(): Promise<{ readonly held: readonly { readonly name?: string; readonly clientId?: string }[] }>;
}

/** The global object, with the types of a page. */
export const pageGlobals = globalThis as unknown as PageGlobals;
