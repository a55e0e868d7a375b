// SPDX-License-Identifier: MIT
package xxdevtest;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** A method of a {@link Program}: every rank runs it, then all meet. */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@interface Case {}
