"""Load tests of CampoTech: many users on a stage, and the figures of the specification measured."""
