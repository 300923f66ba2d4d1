/**
 * Hands a feed to React, to an `AbortSignal`, and to other kinds of Observables.
 *
 * @packageDocumentation
 */
export { subscribed, untilAborted } from './lifetime.js';
export { fromPlatform, toPlatform } from './platform.js';
export type { ObservableConstructor, PlatformObservable, PlatformSubscriber } from './platform.js';
export { toStore, type FeedStore } from './to-store.js';
