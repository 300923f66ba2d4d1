// Files that the test adds to the app: they count the runs of change detection, and check types.

/** Returns `src/main.ts` with a count of the runs of change detection in `renders`. */
export const countingMain = (isZoned) => `
import { afterEveryRender, mergeApplicationConfig, provideAppInitializer${isZoned ? ', provideZoneChangeDetection' : ''} } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { App } from './app/app';
import { appConfig } from './app/app.config';

const page = globalThis as { renders?: number };
page.renders = 0;
const counted = provideAppInitializer(() => {
  afterEveryRender({ read: () => { page.renders = (page.renders ?? 0) + 1; } });
});
const providers = [counted${isZoned ? ', provideZoneChangeDetection()' : ''}];
bootstrapApplication(App, mergeApplicationConfig(appConfig, { providers })).catch((error) => console.error(error));
`;

/** A file that compiles only if the types of the library exist, and none of them is \`any\`. */
export const typeProof = `
import type { AngularTradeFeed } from 'rx-trade-feed/angular';
import type { AnyFrame, Frame, TradeFeedError } from 'rx-trade-feed/browser';
import type { Observable } from 'rxjs';

type Same<A, B> = [A, B, 0 extends 1 & A ? 1 : 2] extends [B, A, 2] ? true : false;
type Emitted<O> = O extends Observable<infer T> ? T : never;
type Is<T extends true> = T;

export type Bytes = Is<Same<Emitted<AngularTradeFeed['frames$']>['data'], Uint8Array>>;
export type InWindow = Is<Same<NonNullable<ReturnType<AngularTradeFeed['window']>>['frames'][number]['data'], Uint8Array>>;
export type Any = Is<Same<AnyFrame['data'], Uint8Array>>;
export type IsFrame = Is<Same<Emitted<AngularTradeFeed['frames$']>, Frame<Uint8Array>>>;
export type Stopped = Is<Same<ReturnType<AngularTradeFeed['failure']>, TradeFeedError | undefined>>;
export type State = Is<Same<ReturnType<AngularTradeFeed['status']>['state'], 'connecting' | 'live' | 'reconnecting' | 'stopped'>>;

export const check = (feed: AngularTradeFeed): void => {
  // @ts-expect-error -- bytes are not a string; with the type \`any\` this would compile
  feed.frames$.subscribe((frame) => frame.data satisfies string);
};
`;
