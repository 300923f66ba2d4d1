import { Global, Module, type OnModuleInit } from '@nestjs/common';
import { invalidOption } from '../protocol/rules.js';
import type { TradeFeedModuleOptions } from './module-options.js';

/** A feed of an application: its name, and the place in the program that defines it. */
export interface FeedPlace {
  readonly name: string | undefined;
  readonly where: string;
  /** Makes each definition differ: with `moduleIdGeneratorAlgorithm: 'deep-hash'` Nest would take equal ones for one module. */
  readonly id: string;
}

/** A registered feed. */
export interface FeedEntry {
  readonly where: string;
  /** Is called with the options, once they are there. */
  start(options: TradeFeedModuleOptions): void;
}

/** The feeds of one application, which refuses those that could not work. */
export class AppFeeds implements OnModuleInit {
  readonly #entries: Entry[] = [];
  #hooks: Hooks;

  constructor(isAtStart: boolean) {
    this.#hooks = isAtStart ? 'to come' : 'missed';
  }

  /**
   * Registers a feed.
   *
   * @throws TradeFeedError with code `invalid-options` when there is one of that name
   */
  add(place: FeedPlace): FeedEntry {
    const same = this.#entries.find(({ name }) => name === place.name);
    if (same) throw sameName(same, place);
    const entry: Entry = {
      ...place,
      isStarted: false,
      start: ({ connect }) => {
        if (entry.isStarted) throw madePerRequest(place);
        entry.isStarted = true;
        if (connect === 'bootstrap' && this.#hooks === 'missed') throw loadedLazily(place);
      },
    };
    this.#entries.push(entry);
    return entry;
  }

  /** Refuses feeds whose options are not there yet, at the start: Nest makes those for each request. Nest calls it. */
  onModuleInit(): void {
    this.#hooks = 'missed';
    for (const entry of this.#entries) if (!entry.isStarted) throw madePerRequest(entry);
  }
}

/** Whether Nest is still to call the hooks of a module that is loaded now. */
type Hooks = 'to come' | 'missed';

interface Entry extends FeedPlace, FeedEntry {
  isStarted: boolean;
}

const sameName = (one: FeedPlace, other: FeedPlace) =>
  invalidOption(
    'name',
    `different for each feed of an application, but ${one.where} and ${other.where} both ${
      one.name === undefined ? 'have none' : `have '${one.name}'`
    }. Give each further feed a name, or, if one feed is meant, define the module once and import that everywhere`,
  );

const madePerRequest = ({ where }: FeedPlace) =>
  invalidOption(
    'inject',
    `providers with the default scope. That of ${where} depends on a request-scoped one, so each request would open a connection of ` +
      'its own, and evict the one before. Inject what lives as long as the application; a key that changes is a function: `apiKey: () => …`',
  );

const loadedLazily = ({ where }: FeedPlace) =>
  invalidOption(
    'connect',
    `'first-subscriber' in a module that is loaded lazily. Nest calls no onApplicationBootstrap for ${where}, so nothing would ` +
      'connect. Subscribe after the load, or import the module at the start',
  );

const atStart = Symbol('at start');

/** Provides the {@link AppFeeds} of an application: Nest makes one of each module that is no definition. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest is a class
class AppFeedsModule {}
Module({
  providers: [
    {
      provide: AppFeeds,
      inject: [{ token: atStart, optional: true }],
      useFactory: (isAtStart?: boolean) => new AppFeeds(isAtStart === true),
    },
  ],
  exports: [AppFeeds],
})(AppFeedsModule);

// Nest binds a global module to all others when the application starts, but not to modules that were loaded lazily before it.
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest is a class
class AtStartModule {}
Global()(AtStartModule);
Module({ providers: [{ provide: atStart, useValue: true }], exports: [atStart] })(AtStartModule);

/** What a module of a feed imports. In this order: the second is global, and must come after the first. */
export const feedImports = [AppFeedsModule, AtStartModule];
