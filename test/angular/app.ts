import '@angular/compiler';
import {
  ChangeDetectionStrategy,
  Component,
  type EnvironmentProviders,
  ErrorHandler,
  NgModule,
  platformCore,
  type Provider,
  provideZonelessChangeDetection,
  RendererFactory2,
  type Type,
  ɵINJECTOR_SCOPE,
  ɵsetDocument,
} from '@angular/core';
import { expect } from '@jest/globals';
import { type ComponentFixture, TestBed, TestComponentRenderer } from '@angular/core/testing';
import { type AngularTradeFeed, injectTradeFeed } from '../../src/angular/inject-trade-feed.js';

// Real Angular with components, templates and change detection, but without a browser: the renderer below uses plain objects.

class PlainNode {
  text = '';
  parent: PlainNode | undefined;
  readonly children: PlainNode[] = [];

  toString(): string {
    return this.text + this.children.join('');
  }
}

const nothing = () => undefined;
const renderer = {
  data: {},
  selectRootElement: () => new PlainNode(),
  createElement: () => new PlainNode(),
  createComment: () => new PlainNode(),
  createText: (text: string) => Object.assign(new PlainNode(), { text }),
  destroy: nothing,
  setAttribute: nothing,
  setProperty: nothing,
  listen: () => nothing,
  appendChild: (parent: PlainNode, child: PlainNode) => parent.children.push(Object.assign(child, { parent })),
  insertBefore: (parent: PlainNode, child: PlainNode, before: PlainNode) =>
    parent.children.splice(parent.children.indexOf(before), 0, Object.assign(child, { parent })),
  removeChild: (_parent: unknown, child: PlainNode) =>
    child.parent?.children.splice(child.parent.children.indexOf(child), 1),
  parentNode: ({ parent }: PlainNode) => parent,
  nextSibling: nothing,
  setValue: (node: PlainNode, text: string) => {
    node.text = text;
  },
};

const TestPlatform = NgModule({
  providers: [
    { provide: ɵINJECTOR_SCOPE, useValue: 'root' },
    { provide: RendererFactory2, useValue: { createRenderer: () => renderer } },
    { provide: TestComponentRenderer, useValue: { insertRootElement: nothing, removeAllRootElements: nothing } },
    { provide: ErrorHandler, useFactory: () => new ErrorHandler() },
  ],
})(class {});

Object.assign(globalThis, { Node: PlainNode });
ɵsetDocument({ head: {} });
TestBed.initTestEnvironment(TestPlatform, platformCore());

/** Starts a zoneless app with these providers. It replaces the previous app. */
export const startApp = (...providers: readonly (Provider | EnvironmentProviders)[]): void => {
  TestBed.resetTestingModule();
  TestBed.configureTestingModule({ providers: [provideZonelessChangeDetection(), ...providers] });
};

/** Renders a component with `OnPush`. */
export const show = <C>(component: Type<C>, template = ''): ComponentFixture<C> => {
  const metadata = { selector: 'a-component', template, changeDetection: ChangeDetectionStrategy.OnPush };
  return TestBed.createComponent(Component(metadata)(component));
};

export class Reader {
  readonly feed: AngularTradeFeed = injectTradeFeed();
}

/** Creates a component that injects the feed, and returns the feed. */
export const readFeed = (): AngularTradeFeed => show(Reader).componentInstance.feed;

/** An Angular zone that knows whether code runs inside it. */
export const fakeZone = () => {
  let isInside = false;
  const within =
    (inside: boolean) =>
    <T>(work: () => T): T => {
      const before = isInside;
      isInside = inside;
      try {
        return work();
      } finally {
        isInside = before;
      }
    };
  return { isInside: () => isInside, run: within(true), runOutsideAngular: within(false) };
};

/** Checks that a call throws `invalid-options` with this message. */
export const expectInvalid = (call: () => unknown, message: RegExp): void =>
  expect(call).toThrow(expect.objectContaining({ code: 'invalid-options', message: expect.stringMatching(message) }));

/** Returns the text that a component shows. */
export const textOf = ({ nativeElement }: ComponentFixture<unknown>): string => String(nativeElement).trim();
